//! Tests the analysis of commands: against a table, against bash, against random input.

mod against_bash;
mod corpus;
mod misjudged;
mod nonsense;
mod oracle;
mod rules;
#[allow(
    unreachable_pub,
    clippy::disallowed_methods,
    reason = "it is public in the testkit, and writes the list of skips"
)]
#[path = "../../../toolgate-testkit/src/skip.rs"]
mod skip;
mod table;
mod tricks;
mod world;
mod wrapped;
mod wrapper_flags;
