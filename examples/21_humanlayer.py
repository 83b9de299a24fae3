"""A program with HumanLayer's SDK, as it was: only its address and its key are those of an Interlock server.

interlock serve                                                    in one terminal
interlock keys create --name mailer --role agent --agent mailer    in another one: prints a key
HUMANLAYER_API_BASE=http://127.0.0.1:8321/humanlayer/v1 HUMANLAYER_API_KEY=… python examples/21_humanlayer.py
interlock approvals list                                           in a third one, beside the server
interlock approvals approve ID                                     and then: interlock approvals respond ID MESSAGE
"""
# Needs humanlayer

from humanlayer import HumanLayer

hl = HumanLayer(agent_name="mailer", verbose=True)


@hl.require_approval()
def send_mail(to: str, text: str) -> str:
    print(f"sending to {to}")  # the real work goes here: it runs once, after somebody said yes
    return "sent"


ask = hl.human_as_tool()

print(send_mail(to="bob@example.com", text="The report is done."))  # by name: the SDK sends nothing else
print(ask("Who should get the next one?"))
