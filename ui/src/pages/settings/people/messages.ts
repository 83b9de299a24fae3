/** The texts of the settings of people and teams, by the file that shows them. */

// In more than one file
export const teams = "Teams";

// ChangePerson
export const outOfOffice = "Out of office";
export const save = "Save";
export const loadCurrentVersion = "Load the current version";
export const cannotRemoveYourself = "You cannot remove yourself here. Another admin can.";
export const signOutEverywhere = (name: string) => `Sign ${name} out everywhere`;
export const signedOutHelp = (name: string) =>
  `${name} must sign in again in every browser, and personal keys are revoked. Agent keys keep working.`;
export const personIsSignedOut = (name: string, sessions: number, keys: number) =>
  `${name} is signed out: ${sessions === 1 ? "1 session" : `${sessions} sessions`} and ${keys === 1 ? "1 key" : `${keys} keys`} ended.`;
export const removePerson = (name: string) => `Remove ${name}`;
export const allRightsEnd = (name: string) =>
  `All rights of ${name} end at once. Earlier approvals stay valid. Requests that only ${name} may approve can no longer be approved. The ledger keeps the name, and nobody else can use it.`;
export const whatEnds = "What ends";
export const nothingEnds = "They have no grants, keys, sessions, votes or delegations.";
export const keptKeys = (keys: string) =>
  `Keys that they created for others stay active: ${keys}. Replace them if necessary.`;
export const role = "Role";
export const viewerRole = "viewer: views, decides nothing";
export const reviewerRole = "reviewer: decides";
export const adminRole = "admin: decides and changes settings";
export const teamsHint = "Separated by commas. Rules can name teams as approvers.";
export const eMailAddress = "E-mail address";
export const emailHint = "For signing in with your organisation's provider, if there is one.";

// PeopleTab
export const people = "People";
export const peopleHelp = "Viewers can look, reviewers can decide, admins can change everything.";
export const peopleHelpForOthers =
  "Viewers can look, reviewers can decide, admins can change everything. Only admins can add or remove people.";
export const findPerson = "Find a person";
export const findByNameTeamOrRole = "Find by name, team or role";
export const addPerson = "Add person";
export const linkForPerson = (name: string) => `Sign-in link for ${name}`;
export const changePerson = (name: string) => `Change ${name}`;
export const inTeams = (teams: string) => `in ${teams}`;
export const inNoTeam = "in no team";
export const you = "you";
export const awayUntil = (dateTime: string, deputies: string) => `Away until ${dateTime}. ${deputies}`;
export const signInLink = "Sign-in link";
export const change = "Change";
export const name = "Name";
export const nameIsPermanent = "Permanent: the ledger keeps it.";
export const add = "Add";
export const linkIsForName = (name: string) => `For ${name}`;
export const sendLinkPrivately = (name: string, dateTime: string) =>
  `Send it to ${name} over a private channel. It works once, until ${dateTime}.`;
export const whoeverOpensTheLink = (name: string) =>
  `The first person to open the link is signed in as ${name} and may choose a new password. The ledger records that you created it.`;
export const validFor = "Valid for";
export const anHour = "an hour";
export const aDay = "a day";
export const aWeek = "a week";
export const createSignInLink = "Create sign-in link";
export const notNow = "Not now";

// TeamsTab
export const teamsHelp = (isAdmin: boolean) =>
  `Rules can ask a team; one vote from its members counts. Membership is set for each person${isAdmin ? ": select one to change it." : ", by admins."}`;
export const noTeamsYet = "No teams yet";
export const choosePerson = "Choose a person";
export const selectPersonAndEnterTheirTeams = "Select a person and enter their teams.";
export const adminsAddPeopleToTeams = "Admins add people to teams.";
