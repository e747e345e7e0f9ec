// What people read on more than one page, by language: the server puts in the sections "page" of words/*.json.
export default WORDS.page;
