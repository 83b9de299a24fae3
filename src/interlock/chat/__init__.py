"""The reference agent: it chats, calls tools, and every call that changes something goes through the gate."""
