//! `--output` and `--format` of commands that list or tell (`output.rs` of the crate prints).

use clap::{Args, ValueEnum};

/// Flags of commands that list or tell.
#[derive(Clone, Debug, Default, Args)]
pub struct OutputFlags {
    /// Print a table for people, or one JSON value for programs
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "format")]
    pub output: Option<Form>,
    /// Print json, an object a line, or a template of fields such as '{{.Name}}'; `table` before it makes columns
    #[arg(long, value_name = "TEMPLATE")]
    pub format: Option<String>,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Flags of commands that tell all that is known of things, which is JSON in any case.
#[derive(Clone, Debug, Default, Args)]
pub struct InspectOutput {
    /// Print json, an object a line, or a template of fields such as '{{.Name}}', for each
    #[arg(short = 'f', long, value_name = "TEMPLATE")]
    pub format: Option<String>,
    /// Print one JSON value, an array, as is so in any case
    #[arg(long, value_name = "FORM", conflicts_with = "format",
        value_parser = clap::builder::PossibleValuesParser::new(["json"]))]
    pub output: Option<String>,
}
