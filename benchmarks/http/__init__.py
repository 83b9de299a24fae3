"""The server, measured from outside: everything goes over a socket on loopback."""
