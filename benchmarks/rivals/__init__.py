"""Other implementations of the paper's model and poolings, for comparison.

All trainers share one model: GIN-0 with bilinear second-order pooling, as in the code of the paper's authors.
"""

LAYERS = 4
"""The number of message-passing layers. The input features are pooled as well, as a fifth layer."""
HIDDEN = 32
RANK = 32
DROPOUT = 0.5
"""The dropout rate of the logits."""
LEARNING_RATE = 0.01
BATCH = 32
STEPS = 50
"""Batches per epoch, each drawn without replacement from the training graphs."""
