"""A loop of one's own, without any framework: it waits inline."""

from __future__ import annotations

from interlock import ToolSpec
from tests.frameworks.programs.model_scripts import (
    AGENT,
    EFFECTS,
    LAST_REPLY,
    Job,
    RunReport,
    main,
    next_calls,
    result_text,
)


async def run(job: Job) -> RunReport:
    with job.lock() as lock:
        agent, results = lock.agent(AGENT), []
        while calls := next_calls(job.story, len(results)):
            for each in calls:
                call = agent.call(each.tool, each.args, job.run, each.id)
                spec = ToolSpec(each.tool, EFFECTS[each.tool], schema=SCHEMAS[each.tool])
                results.append(result_text(await agent.result(call, spec, getattr(job, each.tool))))
    return RunReport(paused=False, said=LAST_REPLY, results=tuple(results))


def _schema(*names: str) -> dict[str, object]:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


SCHEMAS = {"send_mail": _schema("to", "text"), "get_weather": _schema("city")}


if __name__ == "__main__":
    main(run)
