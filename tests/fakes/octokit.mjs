// GitHub's own client does what people do with it, against the address that it is given; prints what it got.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, baseUrl, auth] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const { Octokit } = await import(pathToFileURL(require.resolve("@octokit/rest")));
const octokit = new Octokit({ auth, baseUrl });
const home = { owner: "octo", repo: "hello", headers: { "x-github-api-version": "2026-03-10" } };

const issue = await octokit.rest.issues.create({ ...home, title: "Fix login", body: "It fails.", labels: ["bug"] });
const number = issue.data.number;
for (let n = 0; n < 5; n++) await octokit.rest.issues.createComment({ ...home, issue_number: number, body: `comment ${n}` });
const comments = await octokit.paginate(octokit.rest.issues.listComments, { ...home, issue_number: number, per_page: 2 });
const pull = await octokit.rest.pulls.create({ ...home, title: "Fix", head: "topic", base: "main" });
const asked = await octokit.rest.pulls.requestReviewers({ ...home, pull_number: pull.data.number, reviewers: ["ada"] });
const issues = await octokit.paginate(octokit.rest.issues.listForRepo, { ...home, state: "all", per_page: 1 });
const pulls = await octokit.rest.pulls.list({ ...home, head: "octo:topic" });
const read = await octokit.rest.issues.get({ ...home, issue_number: number });
const found = await octokit.rest.search.issuesAndPullRequests({ q: "repo:octo/hello is:issue login" });
const missing = await octokit.rest.issues.get({ ...home, issue_number: 99 }).catch((error) => error.status);

console.log(
  JSON.stringify({
    issue: number,
    labels: read.data.labels.map((label) => label.name),
    comments: comments.map((comment) => comment.body),
    reviewers: asked.data.requested_reviewers.map((user) => user.login),
    issues: issues.map((one) => one.number),
    pulls: pulls.data.map((one) => one.number),
    found: found.data.total_count,
    missing,
  }),
);
