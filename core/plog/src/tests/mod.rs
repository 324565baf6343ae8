//! Logs on a disk that loses power, errs, and lies.

mod disk;
mod exhaustive;
mod histories;
mod hostile;
mod lies;
mod map;
mod plain;
mod planted;
mod queue;
mod shell;

use crate::{Area, CommandId};
