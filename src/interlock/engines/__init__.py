"""Durable engines that people have already: one file each. A workflow waits for people without holding anything.

Each only translates: it proposes under the workflow's own ids, waits as its engine waits, and lets `Agent.attempt` do
the rest. What wakes it means "look again"; nothing that comes with it is believed.
"""
