"""Load graphs: data sets by name, the cache, downloads and streams."""
