"""Benchmarks of the server over a loopback socket."""
