//! The functions behind the counts: where to look for what is fat, and what the rules forgot.

use bench_pair::System;

use crate::classes::Class;
use crate::echo::Echoes;

/// Functions with less than this many instructions per echo are left out.
const LEAST: f64 = 3.0;

/// All lists as text.
pub fn list(counts: &[Echoes]) -> String {
    counts.iter().map(of_one).collect()
}

fn of_one(echoes: &Echoes) -> String {
    let system: System = echoes.system;
    let mut text = format!("{}, window {}\n", system.name(), echoes.window);
    for class in Class::ALL {
        text += &format!("  {} {:.0}\n", class.name(), echoes.of(class));
        let of_class = echoes
            .functions
            .iter()
            .filter(|((its, _), _)| *its == class);
        let mut functions: Vec<_> = of_class.filter(|&(_, &count)| count >= LEAST).collect();
        functions.sort_by(|one, other| other.1.total_cmp(one.1));
        for ((_, name), count) in functions {
            text += &format!("    {count:7.1} {name}\n");
        }
    }
    text
}
