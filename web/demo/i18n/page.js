// What people read on more than one page, by language: the server puts in the sections "page" of internal/words/*.json.
export default WORDS.page;
