"use strict";

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.message);
  return told;
}

function onSubmit(form, send) {
  const problem = form.querySelector(".problem");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    problem.textContent = "";
    try {
      const told = await send(Object.fromEntries(new FormData(form)));
      location.replace(told.next);
    } catch (error) {
      problem.textContent = error.message;
      button.disabled = false;
    }
  });
}

const signin = document.getElementById("signin");
if (signin) {
  const next = new URLSearchParams(location.search).get("next") || "";
  document.getElementById("oidc").search = next && "?" + new URLSearchParams({ next });
  onSubmit(signin, (fields) => post("/api/session", { ...fields, next }));
}

const welcome = document.getElementById("welcome");
if (welcome) {
  const token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname); // the token stays in no history
  const problem = welcome.querySelector(".problem");
  const name = welcome.elements.namedItem("name");
  const password = welcome.elements.namedItem("password");
  post("/api/session/link/look", { token })
    .then((link) => {
      name.parentElement.hidden = link.name !== "";
      name.required = link.name === "";
      password.required = link.new;
      const who = link.name || "a new " + link.role;
      document.getElementById("about").textContent =
        "This link signs you in once, as " + who + " of the workspace " + link.workspace + "." +
        (link.new ? "" : " A new password is possible, and not needed.");
    })
    .catch((error) => { problem.textContent = error.message; });
  onSubmit(welcome, (fields) => post("/api/session/link", { token, ...fields }));
}
