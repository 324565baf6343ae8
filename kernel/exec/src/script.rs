//! `#!`: programs that another program reads.

use sync::{Error, Result};

/// Bytes of a file that are looked at for `#!` and the ELF header.
pub const FIRST_BYTES: usize = 256;

/// What the first line of a script says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Script<'a> {
    /// The path of the program that reads it.
    pub interpreter: &'a [u8],
    /// All the rest of the line, if there is any: one argument.
    pub argument: Option<&'a [u8]>,
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let Some((first, rest)) = bytes.split_first()
        && is_blank(first)
    {
        bytes = rest;
    }
    while let Some((last, rest)) = bytes.split_last()
        && is_blank(last)
    {
        bytes = rest;
    }
    bytes
}

/// The script's line, or `None` if the file does not start with `#!`.
///
/// Errors: `NotExecutable` if the line names nothing, or its path is cut off.
pub fn parse(first: &[u8]) -> Result<Option<Script<'_>>> {
    let Some(rest) = first.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let end = rest.iter().position(|&byte| byte == b'\n' || byte == 0);
    let line = trim(&rest[..end.unwrap_or(rest.len())]);
    let split = line.iter().position(is_blank);
    if line.is_empty() || (end.is_none() && split.is_none() && first.len() == FIRST_BYTES) {
        return Err(Error::NotExecutable);
    }
    let (interpreter, argument) = line.split_at(split.unwrap_or(line.len()));
    let argument = Some(trim(argument)).filter(|argument| !argument.is_empty());
    Ok(Some(Script {
        interpreter,
        argument,
    }))
}
