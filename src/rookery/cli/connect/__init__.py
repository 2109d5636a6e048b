"""`rookery connect`: give a client the MCP configuration with which it reaches Rookery.

A configuration file is never written anew: text is inserted, and what stood there stays byte for byte.
"""

from rookery.cli.connect.clients import CLIENTS
from rookery.cli.connect.command import connect

__all__ = ["CLIENTS", "connect"]
