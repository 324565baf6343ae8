//! Bytes as people compare them.

const LINE_BYTES: usize = 16;

/// Lines of sixteen bytes each: offset, pairs of bytes, characters.
pub fn dump(bytes: &[u8], (offset, len): (usize, usize)) -> String {
    let shown = bytes.get(offset..).unwrap_or_default();
    let shown = &shown[..len.min(shown.len())];
    let lines = shown.chunks(LINE_BYTES).enumerate();
    lines
        .map(|(index, part)| line(offset + index * LINE_BYTES, part))
        .collect()
}

fn line(at: usize, part: &[u8]) -> String {
    let pairs: Vec<String> = part
        .chunks(2)
        .map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    let characters: String = part.iter().map(|byte| character(*byte)).collect();
    format!("\t{at:>4}: {:<40} {characters}\n", pairs.join(" "))
}

fn character(byte: u8) -> char {
    match byte {
        0x20..0x7f => char::from(byte),
        _ => '.',
    }
}
