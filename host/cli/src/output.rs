//! How commands that list or tell print what they know: as a table for people, or for programs.
//!
//! `--output json` prints one JSON value: an array if the command lists, an object if it tells of one thing. `--format json`
//! prints an object a line, and `--format TEMPLATE` fields, both as docker does ([`crate::format`]). The fields are a contract:
//! docs/operating.md lists them, fields are added and never renamed, sizes are in bytes and times in seconds.

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::flags::{Form, InspectOutput, OutputFlags};
use crate::format::Template;

/// How something is to be printed.
enum How {
    Table,
    Json,
    Lines(Template),
}

impl OutputFlags {
    fn how(&self) -> Result<How, Failure> {
        Ok(match (self.output, &self.format) {
            (Some(Form::Json), _) => How::Json,
            (_, Some(format)) => How::Lines(Template::parse(format)?),
            _ => How::Table,
        })
    }

    /// Whether it is for people, who may see some of it earlier than the rest.
    pub fn is_table(&self) -> bool {
        self.output != Some(Form::Json) && self.format.is_none()
    }

    /// Prints a list, by `table` if it is for people.
    ///
    /// Errors: a template that is none.
    pub fn list<T: Serialize>(&self, rows: &[T], table: impl FnOnce(&[T])) -> Result<(), Failure> {
        match self.how()? {
            How::Table => table(rows),
            How::Json => println!("{:#}", values(rows)),
            How::Lines(template) => {
                let values = rows.iter().map(value).collect::<Vec<_>>();
                let lines = template.lines(&values);
                lines.iter().for_each(|line| println!("{line}"));
            }
        }
        Ok(())
    }

    /// Prints one thing, by `table` if it is for people.
    ///
    /// Errors: a template that is none.
    pub fn one<T: Serialize>(&self, thing: &T, table: impl FnOnce(&T)) -> Result<(), Failure> {
        match self.how()? {
            How::Json => println!("{:#}", value(thing)),
            _ => self.list(std::slice::from_ref(thing), |_| table(thing))?,
        }
        Ok(())
    }
}

fn values<T: Serialize>(rows: &[T]) -> Value {
    rows.iter().map(value).collect()
}

/// What is printed is made of maps with names, which JSON has.
fn value<T: Serialize>(thing: &T) -> Value {
    serde_json::to_value(thing).unwrap_or_default()
}

impl InspectOutput {
    /// Prints them.
    ///
    /// Errors: a template that is none.
    pub fn show(&self, things: &[Value]) -> Result<(), Failure> {
        let flags = OutputFlags {
            output: Some(Form::Json).filter(|_| self.format.is_none()),
            format: self.format.clone(),
        };
        flags.list(things, |_| ())
    }
}
