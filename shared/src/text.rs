//! Text that comes from elsewhere and goes before a model or a person.

/// Whether a character is invisible or steers its surroundings: controls (but tab and newline), zero-width,
/// bidirectional, tag and variation characters, and others that people cannot see but a model reads.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{00}'..='\u{08}' | '\u{0B}'..='\u{1F}' | '\u{7F}'..='\u{9F}'
        | '\u{AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// Removes hidden characters and says how many there were. Borrows when there is nothing to do.
pub fn clean(text: &str) -> (std::borrow::Cow<'_, str>, usize) {
    let hidden = text.chars().filter(|c| is_hidden(*c)).count();
    if hidden == 0 {
        (text.into(), 0)
    } else {
        (text.chars().filter(|c| !is_hidden(*c)).collect::<String>().into(), hidden)
    }
}

/// Removes hidden characters and keeps at most `max_chars` of the others.
pub fn clean_and_cut(text: &str, max_chars: usize) -> String {
    text.chars().filter(|c| !is_hidden(*c)).take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_cannot_see_does_not_reach_a_model() {
        let (text, removed) = clean("Free space.\u{e0041}\u{e0042}\u{202e}\u{1b}[2J");
        assert_eq!((text.as_ref(), removed), ("Free space.[2J", 4));
        assert_eq!(clean_and_cut("F\u{202e}ree space", 4), "Free");
        assert_eq!(clean("line\n\tnext é 漢"), ("line\n\tnext é 漢".into(), 0));
    }
}
