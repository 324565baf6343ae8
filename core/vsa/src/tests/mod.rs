//! A catalogue on a disk that loses power, errs, and holds what somebody wrote on purpose.

mod disk;
mod hostile;
mod plain;
mod planted;
mod power;
mod ring;
mod rings;
