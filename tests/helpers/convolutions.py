"""The convolutions of DiffPool and EigenGCN, written once more with plain matrices."""

import torch
import torch.nn.functional as F


def convolved(stack, rows, matrices, training=False):
    """The outputs of three layers for each graph; batch norm has the nodes of all graphs."""
    sizes = [len(x) for x in rows]
    every = []
    for number, layer in enumerate(stack.layers):
        linear = layer.linear
        added = [a + torch.eye(len(a)).double() if layer.loops else a for a in matrices]
        z = torch.cat([a @ x @ linear.weight.t() + linear.bias for a, x in zip(added, rows, strict=True)])
        z = z / z.norm(dim=1, keepdim=True)
        if number < 2:
            norm = stack.norms[number].module
            state = (norm.running_mean.clone(), norm.running_var.clone(), norm.weight, norm.bias)
            z = F.batch_norm(z.relu(), *state, training=training)
        every.append(z)
        rows = z.split(sizes)
    return torch.cat(every, 1).split(sizes)
