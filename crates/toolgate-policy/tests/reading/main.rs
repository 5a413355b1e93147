//! Tests the analysis of commands: against a table, against bash, against random input.

mod against_bash;
mod corpus;
mod nonsense;
mod rules;
mod table;
mod tricks;
mod world;
mod wrapped;
mod wrapper_flags;
