"""What every part of the package may need of the running process: signals, threads, worker processes, devices."""
