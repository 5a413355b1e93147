//! Regular expressions that models give beside the pattern of a native search. They are applied to the lines of a reply, so what is
//! read and searched stays what was judged.

use regex::{Regex, RegexBuilder};
use toolgate_contract::ToolError;

use crate::dialect::EnterFault;
use crate::parameter::Arguments;

/// The expression of an argument, if it was given.
pub(crate) fn given(args: &Arguments, name: &str, ignore_case: bool) -> Result<Option<Regex>, EnterFault> {
    args.text(name).map(|pattern| expression(pattern, ignore_case)).transpose().map_err(|fault| {
        ToolError::invalid_args(format!("`{name}` can't be used: {fault}"))
            .with_hint("Fix the expression, or leave it out.")
            .into()
    })
}

/// An expression as the native search reads it.
pub(crate) fn expression(pattern: &str, ignore_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).case_insensitive(ignore_case).multi_line(true).crlf(true).build()
}
