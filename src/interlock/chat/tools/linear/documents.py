"""GraphQL documents, all that are ever sent to Linear. Tests validate each against Linear's own schema."""

ISSUE_FIELDS = """
fragment IssueFields on Issue {
  id identifier title description priority priorityLabel trashed url
  state { id name } assignee { id name } team { id key name } labels(first: 50) { nodes { id name } }
}
"""
CYCLE_FIELDS = "fragment CycleFields on Cycle { id number name startsAt endsAt team { key name } }"

ISSUE = "query Issue($id: String!) { issue(id: $id) { ...IssueFields } }" + ISSUE_FIELDS
ISSUE_WITH_RELATIONS = (
    """
query IssueWithAll($id: String!) {
  issue(id: $id) {
    ...IssueFields
    children(first: 50) { nodes { identifier title } pageInfo { hasNextPage } }
    comments(first: 50) { nodes { id } pageInfo { hasNextPage } }
    attachments(first: 50) { nodes { id } pageInfo { hasNextPage } }
  }
}
"""
    + ISSUE_FIELDS
)
ISSUE_WITH_COMMENTS = (
    """
query IssueWithComments($id: String!, $first: Int) {
  issue(id: $id) {
    ...IssueFields
    createdAt updatedAt project { name } cycle { number name } parent { identifier title }
    children(first: 50) { nodes { identifier title } pageInfo { hasNextPage } }
    comments(first: $first) { nodes { body createdAt user { name } } pageInfo { hasNextPage } }
  }
}
"""
    + ISSUE_FIELDS
)
ISSUES = """
query Issues($filter: IssueFilter, $first: Int, $after: String) {
  page: issues(filter: $filter, first: $first, after: $after, orderBy: updatedAt) {
    nodes { identifier title url priorityLabel state { name } assignee { name } }
    pageInfo { hasNextPage endCursor }
  }
}
"""
SEARCH = """
query Search($term: String!, $first: Int, $after: String) {
  page: searchIssues(term: $term, first: $first, after: $after) {
    nodes { identifier title url priorityLabel state { name } assignee { name } }
    pageInfo { hasNextPage endCursor }
  }
}
"""
TEAM_LIST = """
query TeamList($first: Int, $after: String) {
  page: teams(first: $first, after: $after) { nodes { key name } pageInfo { hasNextPage endCursor } }
}
"""
STATUS_LIST = """
query StatusList($filter: WorkflowStateFilter, $first: Int, $after: String) {
  page: workflowStates(filter: $filter, first: $first, after: $after) {
    nodes { name type position team { key } }
    pageInfo { hasNextPage endCursor }
  }
}
"""
LABEL_LIST = """
query LabelList($filter: IssueLabelFilter, $first: Int, $after: String) {
  page: issueLabels(filter: $filter, first: $first, after: $after) {
    nodes { name team { key } }
    pageInfo { hasNextPage endCursor }
  }
}
"""
PROJECT_LIST = """
query ProjectList($filter: ProjectFilter, $first: Int, $after: String) {
  page: projects(filter: $filter, first: $first, after: $after) {
    nodes { id name url description status { name } }
    pageInfo { hasNextPage endCursor }
  }
}
"""
CYCLE_LIST = (
    """
query CycleList($filter: CycleFilter, $first: Int, $after: String) {
  page: cycles(filter: $filter, first: $first, after: $after) {
    nodes { ...CycleFields }
    pageInfo { hasNextPage endCursor }
  }
}
"""
    + CYCLE_FIELDS
)
COMMENT = "query Comment($id: String) { comment(id: $id) { id body url issue { identifier } } }"
PROJECT = "query Project($id: String!) { project(id: $id) { id name url status { name } } }"
CYCLE = "query Cycle($id: String!) { cycle(id: $id) { ...CycleFields } }" + CYCLE_FIELDS

VIEWER = "query Viewer { viewer { id name email } }"
PEOPLE = """
query People($exact: UserFilter, $near: UserFilter) {
  exact: users(filter: $exact, first: 5) { nodes { id name displayName email } }
  near: users(filter: $near, first: 100) { nodes { id name displayName email } }
}
"""
TEAMS = """
query Teams($exact: TeamFilter, $near: TeamFilter) {
  exact: teams(filter: $exact, first: 5) { nodes { id key name } }
  near: teams(filter: $near, first: 100) { nodes { id key name } }
}
"""
STATES = """
query States($exact: WorkflowStateFilter, $near: WorkflowStateFilter) {
  exact: workflowStates(filter: $exact, first: 5) { nodes { id name } }
  near: workflowStates(filter: $near, first: 100) { nodes { id name } }
}
"""
LABELS = """
query Labels($exact: IssueLabelFilter, $near: IssueLabelFilter) {
  exact: issueLabels(filter: $exact, first: 5) { nodes { id name } }
  near: issueLabels(filter: $near, first: 100) { nodes { id name } }
}
"""
CYCLES = (
    """
query Cycles($exact: CycleFilter, $near: CycleFilter) {
  exact: cycles(filter: $exact, first: 5) { nodes { ...CycleFields } }
  near: cycles(filter: $near, first: 20) { nodes { ...CycleFields } }
}
"""
    + CYCLE_FIELDS
)

CREATE_ISSUE = (
    """
mutation CreateIssue($input: IssueCreateInput!) {
  done: issueCreate(input: $input) { success issue { ...IssueFields } }
}
"""
    + ISSUE_FIELDS
)
UPDATE_ISSUE = (
    """
mutation UpdateIssue($id: String!, $input: IssueUpdateInput!) {
  done: issueUpdate(id: $id, input: $input) { success issue { ...IssueFields } }
}
"""
    + ISSUE_FIELDS
)
ADD_LABEL = (
    """
mutation AddLabel($id: String!, $labelId: String!) {
  done: issueAddLabel(id: $id, labelId: $labelId) { success issue { ...IssueFields } }
}
"""
    + ISSUE_FIELDS
)
REMOVE_LABEL = (
    """
mutation RemoveLabel($id: String!, $labelId: String!) {
  done: issueRemoveLabel(id: $id, labelId: $labelId) { success issue { ...IssueFields } }
}
"""
    + ISSUE_FIELDS
)
DELETE_ISSUE = "mutation DeleteIssue($id: String!) { done: issueDelete(id: $id) { success } }"
CREATE_COMMENT = """
mutation CreateComment($input: CommentCreateInput!) {
  done: commentCreate(input: $input) { success comment { id body url issue { identifier } } }
}
"""
CREATE_PROJECT = """
mutation CreateProject($input: ProjectCreateInput!) {
  done: projectCreate(input: $input) { success project { id name url status { name } } }
}
"""
CREATE_CYCLE = (
    """
mutation CreateCycle($input: CycleCreateInput!) {
  done: cycleCreate(input: $input) { success cycle { ...CycleFields } }
}
"""
    + CYCLE_FIELDS
)
UPDATE_CYCLE = (
    """
mutation UpdateCycle($id: String!, $input: CycleUpdateInput!) {
  done: cycleUpdate(id: $id, input: $input) { success cycle { ...CycleFields } }
}
"""
    + CYCLE_FIELDS
)
