"""Why a model scores a graph as it does."""
