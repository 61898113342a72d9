"""Where runs are trained: on this machine or on a Ray cluster, in banks handed out until all are in the store."""
