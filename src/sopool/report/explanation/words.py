"""What an explanation is called in words: the margin of a class, the log-odds of a label, or a predicted number."""

from dataclasses import dataclass

import numpy as np

from sopool.models.explain.explanation import AnyExplanation, Explanation, TargetExplanation
from sopool.report.explanation.drawing import signed


@dataclass(frozen=True)
class Words:
    """The parts of sentences that differ between classes, labels and numbers."""

    heading: str
    """The end of "Why graph 7 ..."."""
    result: str
    """A sentence on the prediction."""
    truth: str
    """What a true value is called."""
    explained: str
    """What is explained, such as "the margin of class yes"."""
    meaning: str
    """A sentence that says what that is."""
    subject: str
    """The start of the sentence on its size, such as "It is"."""
    column: str
    """The title of the column with contributions."""
    against: str
    """What a negative contribution says."""
    favor: str
    """What a positive contribution says."""
    score: str
    """What is a sum over the nodes if the explanation is exact."""


def words_of(explanation: AnyExplanation) -> Words:
    """Return the words for an explanation."""
    if isinstance(explanation, Explanation):
        return _of_class(explanation)
    return _of_number(explanation) if explanation.probabilities is None else _of_label(explanation)


def prediction_words(explanation: AnyExplanation) -> str:
    """Say in a few words what is predicted."""
    if isinstance(explanation, Explanation):
        share = percent(float(explanation.probabilities[explanation.chosen]))
        return f"predicted class {explanation.prediction} ({share})"
    if explanation.probabilities is None:
        return f"predicted {explanation.target} {number(float(explanation.prediction))}"
    share = percent(float(explanation.probabilities[explanation.chosen]))
    return f"predicted {explanation.target} {explanation.prediction} (probability of 1: {share})"


def percent(share: float) -> str:
    """Format a fraction as a percentage with one decimal, never broken across lines."""
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def number(value: float) -> str:
    """Format a predicted number with five significant digits."""
    text = f"{value:.5g}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else "0"


def _of_class(found: Explanation) -> Words:
    name = str(found.prediction)
    share = percent(float(found.probabilities[found.chosen]))
    spread = _spread(found, None if np.isnan(found.uncertainty) else percent(found.uncertainty))
    others = "the mean score of the other classes" if len(found.classes) > 2 else "the score of the other class"
    return Words(
        heading=f"is assigned to class {name}",
        result=f"The predicted probability of class {name} is {share}{spread}.",
        truth="class",
        explained=f"the margin of class {name}",
        meaning=f"The margin of class {name} is its score (logit) minus {others}.",
        subject="It is",
        column="margin",
        against=f"against class {name}",
        favor=f"for class {name}",
        score="score",
    )


def _of_label(found: TargetExplanation) -> Words:
    assert found.probabilities is not None
    name = found.target
    uncertainty = float(found.uncertainty[found.shown])
    share = percent(float(found.probabilities[found.shown]))
    spread = _spread(found, None if np.isnan(uncertainty) else percent(uncertainty))
    return Words(
        heading=f"has {name} predicted as {found.prediction}",
        result=f"The predicted probability that {name} is 1 is {share}{spread}.",
        truth=f"value of {name}",
        explained=f"the log-odds of {name}",
        meaning=f"The log-odds of {name} are the logarithm of the probability of 1 divided by that of 0.",
        subject="They are",
        column="log-odds",
        against=f"for {name} 0",
        favor=f"for {name} 1",
        score="log-odds",
    )


def _of_number(found: TargetExplanation) -> Words:
    name = found.target
    uncertainty = float(found.uncertainty[found.shown])
    spread = _spread(found, None if np.isnan(uncertainty) else signed(uncertainty).lstrip("+"))
    return Words(
        heading=f"has a predicted {name} of {number(float(found.prediction))}",
        result=f"The predicted {name} is {number(float(found.prediction))}{spread}.",
        truth=f"value of {name}",
        explained=f"the predicted {name}",
        meaning=f"All contributions are in the unit of {name}.",
        subject=f"The predicted {name} is",
        column="contribution",
        against=f"lowers {name}",
        favor=f"raises {name}",
        score="predicted number",
    )


def _spread(found: AnyExplanation, uncertainty: str | None) -> str:
    """Say how far the models disagree, if there are several."""
    return "" if uncertainty is None else f" (mean of {len(found.each)} networks, standard deviation {uncertainty})"
