/** The texts of the content page, by the file that shows them. */

// In more than one file
export const status = "Status";
export const title = "Title";
export const updated = "Updated";
export const description = "Description";
export const altTextHint = "What it shows, for people who cannot see it.";
export const addressOfFile = "Address of the file";
export const linksToItWillLeadNowhere = "Links to it will lead nowhere.";
export const text = "Text";

// Content
export const content = "Content";
export const allItems = (kind: string) => `All ${kind}`;

// contentKinds
export const post = "post";
export const posts = "Posts";
export const emptyPosts = "Create a post here, or ask an agent to draft one.";
export const page = "page";
export const pages = "Pages";
export const emptyPages = "Create a page here, or ask an agent to draft one.";
export const image = "image";
export const images = "Images";
export const emptyImages = "Add the images that your posts and pages show.";

// ContentList
export const STATUS_CHOICES = [
  { value: "", label: "any status" },
  { value: "draft", label: "draft" },
  { value: "published", label: "published" },
  { value: "archived", label: "archived" },
];
export const VIEW_CHOICES = [
  { value: "", label: "viewed or not" },
  { value: "30", label: "not for 30 days" },
  { value: "90", label: "not for 90 days" },
  { value: "365", label: "not for a year" },
];
export const SORT_CHOICES = [
  { value: "", label: "newest change" },
  { value: "name", label: "name" },
  { value: "viewed", label: "longest without views" },
];
export const searchItems = (kind: string) => `Search ${kind}`;
export const noItemsMatch = (kind: string) => `No ${kind} match`;
export const noItemsYet = (kind: string) => `No ${kind} yet`;
export const changeSearchOrFilters = "Change the search or the filters.";
export const showMore = "Show more";
export const views = "Views";
export const sortBy = "Sort by";
export const newItem = (one: string) => `New ${one}`;
export const file = "File";
export const usedInHeading = "Used in";
export const lastViewed = "Last viewed";
export const nowhere = "nowhere";
export const never = "never";
export const moreThanShown = (found: string) => `${found} shown; there are more.`;

// ImageEditor
export const itWillBeMissingIn = (usedIn: string) => `It will be missing in ${usedIn}.`;
export const itIsUsedNowhere = "It is used nowhere.";
export const usedInPages = (usedIn: string) => `Used in ${usedIn}`;
export const usedNowhere = "Used nowhere";
export const editImage = "Edit image";
export const imageUrlHint = "Optional, https only. Interlock does not fetch it.";

// ItemFrame
export const history = "History";
export const historyIsDeletedWith = (one: string) =>
  `The last 100 changes. They are deleted with the ${one}.`;
export const deleteThisItem = (one: string) => `Delete this ${one}`;
export const deleteItem = (one: string) => `Delete ${one}`;
export const itemAndHistoryAreDeleted = (one: string, consequence: string) =>
  `The ${one} and its history are deleted for ever. ${consequence}`;
export const viewsUntil = (views: number) =>
  `${views.toLocaleString("en")} ${views === 1 ? "view" : "views"}, last`;
export const noViewsRecorded = "No views recorded";
export const visitorsSeeChangeAtOnce = "Visitors see the change at once.";
export const savingPublishes = "Saving publishes it: everybody can read it at once.";
export const savingUnpublishes = "Saving takes it off the site.";

// NewItem
export const fileName = "File name";
export const imagePathHint = "Posts and pages show it as /images/NAME.";
export const teamJpg = "team.jpg";
export const optionalHttpsOnly = "Optional, https only.";
export const address = "Address";
export const addressHint = (path: string) => `Lower-case letters, digits and hyphens: ${path}`;
export const createItem = (one: string) => `Create ${one}`;
export const cancel = "Cancel";

// PageEditor
export const editPage = "Edit page";
export const thisPageHasNoSectionsYet = "This page has no sections yet.";
export const sectionNumber = (count: number) => `Section ${count}`;
export const heading = "Heading";
export const id = "Id";
export const idHint = "Lower-case letters, digits and hyphens";
export const addSection = "Add section";
export const sectionInSentence = (count: number) => `section ${count}`;
export const moveUpNamed = (name: string) => `Move up ${name}`;
export const moveUp = "Move up";
export const moveDownNamed = (name: string) => `Move down ${name}`;
export const moveDown = "Move down";
export const removeNamed = (name: string) => `Remove ${name}`;
export const remove = "Remove";

// PostEditor
export const editPost = "Edit post";
export const markdown = "Markdown";
