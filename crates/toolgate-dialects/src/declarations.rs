//! A dialect's tools as declarations, so that every place that lists native tools can list them.

use toolgate_contract::schemars::Schema;
use toolgate_contract::{ArgumentFormat, Declaration, ResultForm};

use crate::dialect::{Dialect, DialectTool};

/// The language that the grammars of free text are written in.
const GRAMMAR_LANGUAGE: &str = "lark";

impl Dialect {
    /// The tools whose native ability is among the offered ones.
    pub fn declarations<'a>(&self, offered: impl Iterator<Item = &'a Declaration>) -> Vec<Declaration> {
        let offered: Vec<&Declaration> = offered.collect();
        let declared = self.tools.iter().filter_map(|tool| {
            let native = offered.iter().find(|native| native.name == tool.native)?;
            Some(self.declaration(tool, native))
        });
        declared.collect()
    }

    /// A tool of the dialect has the risk and the permissions of the native one.
    fn declaration(&self, tool: &DialectTool, native: &Declaration) -> Declaration {
        let form = match tool.free_text {
            Some((argument, grammar)) => ArgumentFormat::Freeform {
                syntax: GRAMMAR_LANGUAGE.into(),
                grammar: grammar.into(),
                argument: argument.into(),
            },
            None => ArgumentFormat::Function { strict: false },
        };
        Declaration {
            name: tool.name.into(),
            description: tool.about.into(),
            args_schema: Schema::try_from(self.schema(tool)).unwrap_or_default(),
            result_form: ResultForm::Content,
            form,
            ..native.clone()
        }
    }
}
