//! What is said of names that stand for nothing, or for something else.

use link::links::Class;
use linkctl::{Refusal, not_a};

/// That a link is missing.
pub fn no_such_link(name: &str) -> String {
    Refusal::NoSuchLink { name: name.into() }.to_string()
}

/// That a flow is missing.
pub fn no_such_flow(name: &str) -> String {
    format!("there is no flow {name}")
}

/// That a link is of another class.
pub fn not_of_class(name: &str, class: Class) -> String {
    format!("{name} is {}", not_a(class))
}
