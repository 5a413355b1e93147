//! Reading commands: against a table, against bash, against nonsense.

mod against_bash;
mod nonsense;
mod rules;
mod table;
mod tricks;
mod world;
mod wrapped;
