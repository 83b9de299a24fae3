"""The demo workspace: made-up content, a scripted model, and a stand-in for Linear; all of it says so."""
