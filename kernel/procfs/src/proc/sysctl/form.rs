//! How settings of the network are read and written, and their kinds.
//!
//! | kind | what a write does |
//! |---|---|
//! | [`number!`] | sets a number of the stacks' configuration, within a range |
//! | [`switch!`] | the same for what is on or off: 1 or 0 |
//! | [`choice!`] | the same for one of some values, by their place |
//! | [`fixed!`] | nothing: succeeds if the value stays as it is (files of settings name many) |
//! | [`cell!`] | sets a number that no stack knows |
//!
//! Whatever does not fit is `Invalid`, and then nothing has changed.

use core::ops::RangeInclusive;
use core::str::FromStr;

use sync::{Error, Result};

/// Linux's largest `int`.
pub const INT_MAX: u64 = i32::MAX as u64;

/// The text of a write, without the space around it.
pub fn text(bytes: &[u8]) -> Result<&str> {
    let text = core::str::from_utf8(bytes).map_err(|_| Error::Invalid)?;
    Ok(text.trim())
}

/// A number in `range`, as the type that keeps it.
pub fn parse<T: TryFrom<u64>>(bytes: &[u8], range: RangeInclusive<u64>) -> Result<T> {
    let number = u64::from_str(text(bytes)?).map_err(|_| Error::Invalid)?;
    within(number, range)
}

/// The same of a number that is known.
pub fn within<T: TryFrom<u64>>(number: u64, range: RangeInclusive<u64>) -> Result<T> {
    let inside = Some(number).filter(|number| range.contains(number));
    inside
        .and_then(|number| T::try_from(number).ok())
        .ok_or(Error::Invalid)
}

/// Exactly so many numbers.
pub fn parse_all<const N: usize>(bytes: &[u8]) -> Result<[u64; N]> {
    let mut numbers = [0; N];
    let mut words = text(bytes)?.split_whitespace();
    for number in &mut numbers {
        let word = words.next().ok_or(Error::Invalid)?;
        *number = word.parse().map_err(|_| Error::Invalid)?;
    }
    match words.next() {
        None => Ok(numbers),
        Some(_) => Err(Error::Invalid),
    }
}

/// Whether a write leaves the value of a fixed setting as it is.
pub fn unchanged(bytes: &[u8], value: u64) -> Result<()> {
    parse::<u64>(bytes, value..=value).map(drop)
}

/// A number of the stacks' configuration.
macro_rules! number {
    ($path:literal, $range:expr, $($field:ident).+) => {
        Entry {
            path: concat!("sys/net/", $path),
            generate: |text| writeln!(text, "{}", net::current_stack().settings().$($field).+),
            store: Some(|bytes| {
                let value = form::parse(bytes, $range)?;
                net::current_stack().change_settings(|config| config.$($field).+ = value);
                Ok(())
            }),
        }
    };
}

/// Something in it that is on or off.
macro_rules! switch {
    ($path:literal, $($field:ident).+) => {
        Entry {
            path: concat!("sys/net/", $path),
            generate: |text| writeln!(text, "{}", u8::from(net::current_stack().settings().$($field).+)),
            store: Some(|bytes| {
                let is_on = form::parse::<u8>(bytes, 0..=1)? == 1;
                net::current_stack().change_settings(|config| config.$($field).+ = is_on);
                Ok(())
            }),
        }
    };
}

/// One of some values in it, which a program knows by their place in the list.
macro_rules! choice {
    ($path:literal, [$($value:expr),+], $($field:ident).+) => {
        Entry {
            path: concat!("sys/net/", $path),
            generate: |text| {
                let place = [$($value),+].iter().position(|value| *value == net::current_stack().settings().$($field).+);
                writeln!(text, "{}", place.unwrap_or_default())
            },
            store: Some(|bytes| {
                let values = [$($value),+];
                let place: usize = form::parse(bytes, 0..=values.len() as u64 - 1)?;
                net::current_stack().change_settings(|config| config.$($field).+ = values[place]);
                Ok(())
            }),
        }
    };
}

/// A number that cannot be other than it is.
macro_rules! fixed {
    ($path:literal, $value:expr) => {
        Entry {
            path: concat!("sys/net/", $path),
            generate: |text| writeln!(text, "{}", $value),
            store: Some(|bytes| form::unchanged(bytes, $value)),
        }
    };
}

/// A number that no stack knows.
macro_rules! cell {
    ($path:literal, $range:expr, $cell:expr) => {
        Entry {
            path: concat!("sys/net/", $path),
            generate: |text| writeln!(text, "{}", $cell.load(Ordering::Relaxed)),
            store: Some(|bytes| {
                $cell.store(form::parse(bytes, $range)?, Ordering::Relaxed);
                Ok(())
            }),
        }
    };
}

pub(super) use {cell, choice, fixed, number, switch};
