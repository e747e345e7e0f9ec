// What people read on the operators' page besides, by language: the server puts in the sections "admin" of internal/words/*.json.
export default WORDS.admin;
