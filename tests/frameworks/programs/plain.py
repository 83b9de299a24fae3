"""A loop of one's own, without any framework: it waits where it stands."""

from __future__ import annotations

from interlock import ToolSpec
from tests.frameworks.programs.model_scripts import AGENT, EFFECTS, LAST, Job, Told, calls_of, main, text_of


async def run(job: Job) -> Told:
    with job.lock() as lock:
        agent, results = lock.agent(AGENT), []
        while calls := calls_of(job.story, len(results)):
            for each in calls:
                call = agent.call(each.tool, each.args, job.run, each.id)
                spec = ToolSpec(each.tool, EFFECTS[each.tool], schema=SCHEMAS[each.tool])
                results.append(text_of(await agent.result(call, spec, getattr(job, each.tool))))
    return Told(paused=False, said=LAST, results=tuple(results))


def _schema(*names: str) -> dict[str, object]:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


SCHEMAS = {"send_mail": _schema("to", "text"), "get_weather": _schema("city")}


if __name__ == "__main__":
    main(run)
