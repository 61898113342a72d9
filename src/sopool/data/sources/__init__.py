"""Where graphs come from: data sets by name, the cache, downloads, streams."""
