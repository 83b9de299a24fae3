"""The demo workspace: made-up content, a scripted model, and a fake Linear, all labelled as such."""
