//! Statistics as text.

use std::fmt::Write;

use super::Flags;
use super::source::Statistic;

/// All of them, as the flags want it.
pub fn text(flags: &Flags, all: &[Statistic]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match flags {
        Flags { is_json: true, .. } => json(all, &mut text),
        Flags { is_list: true, .. } => all.iter().try_for_each(|one| writeln!(text, "{one}")),
        Flags {
            is_parsable: true, ..
        } => all
            .iter()
            .try_for_each(|one| writeln!(text, "{one}\t{}", one.value)),
        _ => blocks(all, &mut text),
    };
    text
}

/// For people: a block for each name.
fn blocks(all: &[Statistic], text: &mut String) -> std::fmt::Result {
    for block in all.chunk_by(Statistic::is_beside) {
        let [head, ..] = block else { continue };
        writeln!(
            text,
            "module: {:<30}  instance: {:<6}",
            head.module, head.instance
        )?;
        writeln!(text, "name:   {:<30}  class:    {}", head.name, head.class)?;
        for one in block {
            writeln!(text, "\t{:<30}  {}", one.statistic, one.value)?;
        }
        text.push('\n');
    }
    Ok(())
}

/// Names have no characters that JSON would want written otherwise.
fn json(all: &[Statistic], text: &mut String) -> std::fmt::Result {
    text.push('[');
    for (index, block) in all.chunk_by(Statistic::is_beside).enumerate() {
        let [head, ..] = block else { continue };
        let comma = if index == 0 { "" } else { "," };
        write!(
            text,
            "{comma}{{\"module\":\"{}\",\"instance\":{},\"name\":\"{}\",\"class\":\"{}\",\"data\":{{",
            head.module, head.instance, head.name, head.class
        )?;
        for (index, one) in block.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(text, "{comma}\"{}\":{}", one.statistic, one.value)?;
        }
        text.push_str("}}");
    }
    text.push_str("]\n");
    Ok(())
}
