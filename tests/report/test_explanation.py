"""Pages of explanations: what they say, what they escape, and that they need nothing beside themselves."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from sopool.data import DegreeEncoder, load
from sopool.data.pack import Graph, pack
from sopool.models.explain.explanation import Explanation
from sopool.report.explanation.drawing import AGAINST, FOR, MARKED, NEUTRAL, colour, marked, signed
from sopool.report.explanation.graph_picture import MOST, layout, picture_of
from sopool.report.explanation.page import Subject, explanation_page, node_pairs_grid, nodes_grid, pairs_grid
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import FLAGS, NUMBERS, tiny_regressor, with_targets
from tests.helpers.seen import Seen
from tests.report.test_page import Outline, contrast

EVIL = "<script>alert(1)</script>"


def page_of(graph=STORE[0], name="graph 0 of little", label="even", **changes):
    found = tiny(**changes).fit(STORE, LABELS).explain(graph)[0]
    return explanation_page(found, Subject(graph, name, label, "A model."))


class Text(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.said = []
        self.tags = []
        self.feed(page)

    def handle_data(self, data):
        self.said.append(data)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    @property
    def words(self):
        return " ".join(" ".join(self.said).split())


@pytest.mark.parametrize("pool", ["sopool-bimap", "sopool-m-attn", "sum", "max", "sopool-pairs"])
def test_the_page_is_whole(pool):
    page = page_of(pool=pool)
    outline = Outline()
    text = Text(page)
    outline.feed(page)
    assert outline.headings[0] == outline.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert outline.outside == []
    assert len(set(outline.ids)) == len(outline.ids)
    assert not [tag for tag, _ in text.tags if tag == "script"]
    assert ("Approximate." in text.words) == (pool in ("max", "sopool-pairs"))  # with a logarithm
    assert ("Exact." in text.words) == (pool not in ("max", "sopool-pairs"))
    assert ("Pairs of nodes that contribute most" in text.words) == (pool == "sopool-pairs")
    assert ("Pairs of features" in text.words) == (pool != "max")
    assert ("The pooled graph" in text.words) == (pool == "sopool-m-attn")
    assert "The true class is even." in text.words


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_asks_for_nothing_and_fits_a_small_screen(browser, scheme, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page_of(pool="sopool-m-attn"), encoding="utf-8")
    context = browser.new_context(viewport={"width": 390, "height": 900}, color_scheme=scheme)
    seen = Seen(context.new_page())
    seen.tab.goto(path.as_uri())
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert seen.tab.locator("svg").first.bounding_box()["height"] > 100
    assert seen.requests == [path.as_uri()]
    assert seen.trouble == []
    context.close()


def test_pictures_are_named_and_described():
    page = page_of(pool="sopool-m-attn")
    pictures = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        tree = ElementTree.fromstring(picture)
        ids = tree.attrib["aria-labelledby"].split()
        found = {child.attrib.get("id"): child.text for child in tree}
        assert tree.attrib["role"] == "img"
        assert all(found[name] for name in ids)


def test_the_strongest_pairs_of_nodes_are_arcs_and_rows():
    """Wider for larger values, in the color of their sign, and told with the labels of their nodes."""
    options = {"normalize": None, "rank": 2, "distances": 3}
    model = tiny(pool="sopool-pairs", pool_options=options).fit(STORE, LABELS)
    graph = next(g for g in range(40) if STORE.sizes[g] > 5)
    found = model.explain(STORE[graph])[0]
    pairs = found.strongest_pairs()
    page = explanation_page(found, Subject(STORE[graph], "graph", "even"))
    picture = ElementTree.fromstring(re.search(r"<svg.*?</svg>", page, flags=re.DOTALL)[0])
    arcs = [node for node in picture.iter("{http://www.w3.org/2000/svg}path") if len(node)]
    assert len(arcs) == len(pairs) > 3
    widths = [float(arc.attrib["stroke-width"]) for arc in arcs]
    assert widths == sorted(widths)
    for arc, pair in zip(arcs[::-1], pairs, strict=True):
        first, second = (found.nodes[node] or f"node {node}" for node in (pair.first, pair.second))
        assert arc[0].text == f"{first} and {second} at distance {pair.distance}: {signed(pair.value)}"
        assert arc.attrib["stroke"] == "rgb({},{},{})".format(*(FOR if pair.value > 0 else AGAINST))
    assert "sum over the nodes, each with one half of every pair that it is in, plus the bias" in Text(page).words
    grid = node_pairs_grid(found)
    assert [(row[2].value, row[3].value) for row in grid.rows] == [(pair.distance, pair.value) for pair in pairs]


def test_pairs_of_atoms_are_drawn_in_molecules():
    molecules = load("SOLUBILITY")[:40]
    options = {"normalize": "size", "rank": 2, "distances": 3}
    found = tiny(pool="sopool-pairs", pool_options=options).fit(molecules).explain(molecules[3])[0]
    picture, _ = picture_of(molecules[3], found.decompose().nodes, found.nodes, "t", found.strongest_pairs())
    assert picture.count(" at distance ") == len(found.strongest_pairs()) > 3


def test_names_are_never_markup():
    graph = pack([Graph(3, [[0, 1], [1, 0]], None, [EVIL, "&", '"><b>'], np.ones((3, 2)))])
    with pytest.warns(match="no training graph has"):
        page = page_of(graph, EVIL, EVIL)
    assert "<script" not in page
    assert "<b>" not in page
    assert EVIL in Text(page).words


@pytest.mark.parametrize(("values", "make"), [(NUMBERS, tiny_regressor), (FLAGS, tiny)])
def test_names_of_targets_are_never_markup(values, make):
    graphs = with_targets(values, (EVIL, "&<b>"))
    found = make(epochs=1).fit(graphs).explain(STORE[0])[0]
    page = explanation_page(found, Subject(STORE[0], "graph 0", EVIL))
    assert "<script" not in page
    assert "<b>" not in page
    assert EVIL in Text(page).words


def test_the_table_names_the_nodes_in_order_of_what_they_add():
    graph = load("MUTAG")[0]
    found = tiny().fit(load("MUTAG")).explain(graph)[0]
    margin = found.decompose()
    grid = nodes_grid(found, margin)
    nodes = [int(row[0].text) for row in grid.rows]
    assert nodes == np.argsort(-np.abs(margin.nodes), kind="stable")[:15].tolist()
    assert grid.columns[:3] == ["node", "label", "margin"]
    assert [row[2].text for row in grid.rows] == [signed(float(margin.nodes[node])) for node in nodes]
    left = float(margin.nodes.sum() - margin.nodes[nodes].sum())
    assert grid.notes[0] == f"The other nodes ({graph.num_nodes - 15}) contribute {signed(left)} to the margin."
    assert all(len(row) == len(grid.columns) for row in grid.rows)


def test_of_many_classes_the_table_has_the_most_probable():
    names = np.array(list("abcdefgh"))
    found = tiny(encoder=DegreeEncoder()).fit(STORE, names[np.arange(40) % 8]).explain(STORE[0])[0]
    grid = nodes_grid(found, found.decompose())
    likely = sorted(names[np.argsort(-found.probabilities, kind="stable")[:5]])
    assert grid.columns[-5:] == [f"score of class {name}" for name in likely]
    assert grid.notes[-1] == "Only the scores of the 5 most probable classes are shown."
    node = int(grid.rows[0][0].text)
    assert grid.rows[0][-1].text == signed(float(found.contributions[node, names.tolist().index(likely[-1])]))


@pytest.mark.parametrize(
    ("bias", "nodes", "exact", "reason"),
    [
        (3.0, -1.0, True, "the bias outweighs them"),
        (3.0, -1.0, False, "the bias outweighs them"),
        (0.0, -1.0, False, "what is not attributed to nodes outweighs them"),
        (-1.0, 3.0, True, None),
    ],
)
def test_it_says_why_a_class_is_predicted_against_its_nodes(bias, nodes, exact, reason):
    found = Explanation(
        classes=[0, 1],
        probabilities=np.array([0.3, 0.7]),
        uncertainty=0.1,
        scores=np.array([-1.0, 1.0]),
        bias=np.array([-bias, bias]) / 2,
        each=np.array([[[-nodes, nodes]]]) / 2,
        exact=exact,
        pairs=[[], []],
        pooled=[],
        nodes=["C"],
    )
    words = Text(explanation_page(found, Subject(pack([Graph(1, [])]), "graph 0"))).words
    assert "Why graph 0 is assigned to class 1" in words
    assert ("the nodes argue against class 1" in words) == (reason is not None)
    assert reason is None or f"but {reason}." in words


@pytest.mark.parametrize(
    ("values", "make", "said"),
    [
        (
            NUMBERS,
            tiny_regressor,
            ["has a predicted noise of", "The predicted noise is", "raises noise", "lowers noise"],
        ),
        (FLAGS, tiny, ["has noise predicted as", "The predicted probability that noise is 1 is", "for noise 1"]),
    ],
)
@pytest.mark.parametrize("pool", ["sopool-m-attn", "max"])
def test_pages_of_targets_name_no_classes_and_no_margin(pool, values, make, said):
    found = make(pool=pool).fit(with_targets(values)).explain(STORE[0])[0].of("noise")
    page = explanation_page(found, Subject(STORE[0], "graph 0 of little", "1.5", "A model."))
    outline = Outline()
    outline.feed(page)
    words = Text(page).words
    assert len(set(outline.ids)) == len(outline.ids)
    assert all(one in words for one in said)
    assert "The true value of noise is 1.5." in words
    assert "Prediction of each target" in words
    assert "the margin" not in words
    assert " of class" not in words
    assert ("Exact." in words) == (pool != "max")
    parts = found.decompose()
    assert f"the nodes contribute {signed(float(parts.nodes.sum()))}" in words
    assert f"the bias {signed(parts.bias)}" in words


@pytest.mark.parametrize("models", [1, 2])
def test_pairs_name_their_model_only_if_there_are_several(models):
    found = tiny(pool="sopool-bimap", n_models=models).fit(STORE, LABELS).explain(STORE[0])[0]
    grid = pairs_grid(found)
    assert ("model" in grid.columns) == (models > 1)
    assert any(note.startswith("Model:") for note in grid.notes) == (models > 1)
    assert all(len(row) == len(grid.columns) for row in grid.rows)


def test_molecules_are_drawn_as_such():
    pytest.importorskip("rdkit")
    graph = load("MUTAG")[0]
    values = np.linspace(-1, 2, graph.num_nodes)
    picture, said = picture_of(graph, values, ["C"] * graph.num_nodes, "A molecule")
    assert said.startswith("Charges and hydrogens that are not nodes of the graph are not drawn")
    assert "atom-0" in picture
    ElementTree.fromstring(picture)
    assert picture.count("<text") == len(marked(values))


def test_what_a_molecule_has_is_drawn():
    pytest.importorskip("rdkit")
    from sopool.data.formats.molecules import smiles_to_store

    def drawing(features):
        graph = smiles_to_store(["C[NH3+].[Cl-]", "CC"], features=features)[0][0]
        return picture_of(graph, np.zeros(3), ["C", "N", "Cl"], "A salt")

    _, said = drawing("charge")
    assert said == "Hydrogens that are not nodes of the graph are not drawn, because the model does not use them."
    picture, said = drawing("atoms")
    assert said == ""
    assert picture != drawing("element")[0]


def test_of_large_graphs_the_nodes_that_matter_are_drawn():
    nodes = MOST + 50
    ring = [[i, (i + 1) % nodes] for i in range(nodes)]
    graph = pack([Graph(nodes, ring)])
    values = np.arange(nodes, dtype=float)
    picture, said = picture_of(graph, values, [""] * nodes, "A ring")
    assert f"Only the {MOST} of {nodes} nodes that contribute most" in said
    assert picture.count("<g>") == MOST
    assert "marker-end" in picture
    assert f"node {nodes - 1}: +{nodes - 1}" in picture
    assert "node 3:" not in picture


def test_pictures_are_the_same_each_time():
    graph = STORE[0]
    values = np.arange(graph.num_nodes, dtype=float)
    one, other = (picture_of(graph, values, [""] * graph.num_nodes, "A graph") for _ in range(2))
    assert one == other


def test_parts_that_hang_together_lie_apart():
    rings = nx.disjoint_union_all([nx.cycle_graph(n) for n in (12, 6, 5, 1, 1)])
    at = layout(rings)
    boxes = []
    for part in nx.connected_components(rings):
        places = np.array([at[node] for node in part])
        boxes.append((places.min(0), places.max(0)))
    for one, (low, high) in enumerate(boxes):
        for lower, higher in boxes[:one]:
            assert (low > higher).any() or (lower > high).any()
    ring = np.array([at[node] for node in range(12)])
    assert np.linalg.norm(ring - np.roll(ring, 1, axis=0), axis=1).std() < 0.1


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_small_graphs_and_equal_places_are_drawn(nodes):
    graph = pack([Graph(nodes, [[0, 0]])])
    picture, _ = picture_of(graph, np.zeros(nodes), [""] * nodes, "Small")
    assert "nan" not in picture
    assert "No node contributes." in picture


def test_colours_run_from_one_end_to_the_other_and_black_is_legible_on_all():
    assert colour(-3, 3) == AGAINST
    assert colour(0, 3) == colour(0, 0) == NEUTRAL
    assert colour(5, 3) == FOR
    for share in np.linspace(-1, 1, 21):
        assert contrast("rgb(17,17,17)", "rgb({},{},{})".format(*colour(share, 1))) >= 4.5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.2345, "+1.23"),
        (-0.5, "\N{MINUS SIGN}0.500"),
        (1.4, "+1.40"),
        (169.2, "+169"),
        (0.0, "0"),
        (-0.0, "0"),
        (12345.6, "+12,346"),
        (1e-9, "+1.00e\N{MINUS SIGN}09"),
    ],
)
def test_signs_are_written(value, text):
    assert signed(value) == text


def test_few_nodes_are_marked_and_only_such_as_matter():
    assert marked(np.arange(100.0)) == set(range(100 - MARKED, 100))
    assert marked(np.array([1.0, 0.01, -0.9])) == {0, 2}
    assert marked(np.zeros(4)) == set()


@pytest.mark.parametrize("exact", [True, False])
def test_attributes_of_the_graph_are_part_of_the_sum(exact):
    found = Explanation(
        classes=["no", "yes"],
        probabilities=np.array([0.3, 0.7]),
        uncertainty=0.1,
        scores=np.array([-1.0, 1.0]),
        bias=np.array([0.0, 0.5]),
        each=np.array([[[1.5, -0.5]]]),
        exact=exact,
        pairs=[[], []],
        pooled=[],
        nodes=["C"],
        attributes={"pH": np.array([-2.5, 0.75]), "temperature": np.array([0.0, 0.25])},
    )
    margin = found.decompose()
    assert margin.attributes == {"pH": 3.25, "temperature": 0.25}
    assert margin.bias + margin.nodes.sum() + 3.25 + 0.25 == margin.total == 2.0
    assert margin.rest == 0
    told = found.to_json()
    assert told["attributes"] == {"pH": [-2.5, 0.75], "temperature": [0.0, 0.25]}
    assert told["margin"]["attributes"] == {"pH": 3.25, "temperature": 0.25}
    text = explanation_page(found, Subject(pack([Graph(1, [])]), "graph 0"))
    words = Text(text).words
    assert f"the nodes contribute {signed(-2.0)}, pH {signed(3.25)}, temperature {signed(0.25)}" in words
    assert "the nodes argue against class yes, but the bias and the attributes of the graph outweigh them" in words
    assert ("a sum over the nodes and the attributes of the graph plus the bias" in words) == exact


def test_without_attributes_of_the_graph_nothing_is_said_of_them():
    told = tiny().fit(load("MUTAG")).explain(load("MUTAG")[0])[0]
    assert told.attributes == told.decompose().attributes == {}
    assert "attributes" not in told.to_json()
    assert "attributes" not in told.to_json()["margin"]
