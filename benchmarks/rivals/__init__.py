"""Other ways to train the same model, for comparison. The model and the job that they share are those of PyG's way."""

from sopool.experiments.bench.rivals import BATCH, DROPOUT, HIDDEN, LAYERS, LEARNING_RATE, RANK, STEPS

__all__ = ["BATCH", "DROPOUT", "HIDDEN", "LAYERS", "LEARNING_RATE", "RANK", "STEPS"]
