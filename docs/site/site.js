// Search results quote the pages that they find, which a page that is opened as a file may not read.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
