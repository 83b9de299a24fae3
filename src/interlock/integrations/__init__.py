"""Integrations with agent frameworks, one module each: adapters around `Agent`. The core never imports them."""
