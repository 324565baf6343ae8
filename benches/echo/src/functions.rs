//! The functions behind the counts: where to look for what is fat, and what the rules forgot.

use bench_pair::System;

use crate::classes::Class;
use crate::echo::{self, Echoes, Functions};

/// Functions with less than this many instructions per echo are left out.
const LEAST: f64 = 3.0;

/// All lists as text.
pub fn list(counts: &[Echoes]) -> String {
    counts.iter().map(of_echoes).collect()
}

/// Lists of requests to Redis as text.
pub fn of_requests(requests: &[(&str, Functions)]) -> String {
    let list = |(command, functions): &(&str, Functions)| {
        let total = echo::work(functions);
        of_one(&format!("Redis, {command} {total:.0}"), functions)
    };
    requests.iter().map(list).collect()
}

fn of_echoes(echoes: &Echoes) -> String {
    let system: System = echoes.system;
    let (window, total) = (echoes.window, echoes.total());
    let head = format!("{}, window {window} {total:.0}", system.name());
    of_one(&head, &echoes.functions)
}

/// One list under its heading.
pub fn of_one(head: &str, functions: &Functions) -> String {
    let mut text = format!("{head}\n");
    for class in Class::ALL {
        let mut of_class: Vec<_> = functions
            .iter()
            .filter(|((its, _), _)| *its == class)
            .collect();
        let sum: f64 = of_class.iter().map(|&(_, count)| count).sum();
        text += &format!("  {} {sum:.0}\n", class.name());
        of_class.retain(|&(_, &count)| count >= LEAST);
        of_class.sort_by(|one, other| other.1.total_cmp(one.1));
        for ((_, name), count) in of_class {
            text += &format!("    {count:7.1} {name}\n");
        }
    }
    text
}
