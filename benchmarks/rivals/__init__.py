"""Other ways to train the model of the paper and to write its poolings, for comparison.

The model, which all trainers share, is GIN-0 with bilinear second-order pooling, as in the code of the paper's authors.
"""

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
