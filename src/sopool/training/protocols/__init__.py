"""Turn recorded learning curves into reported accuracies."""
