"""Other ways to train the same model, for comparison. This is the model and the job that they share."""

LAYERS = 4
"""Message-passing layers; the input features are pooled as well, as a fifth."""
HIDDEN = 32
RANK = 32
DROPOUT = 0.5
"""On the logits."""
LEARNING_RATE = 0.01
BATCH = 32
STEPS = 50
"""Batches in an epoch, each drawn without replacement from the training graphs."""
