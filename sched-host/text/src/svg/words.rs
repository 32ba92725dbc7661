//! Estimated width of text, shortening and wrapping.

/// Average width of a character relative to the font size.
const CHARACTER: f64 = 0.59;

/// Estimated width of words in a font of this size, in pixels; the viewer chooses the font.
#[must_use]
pub fn text_width(words: &str, size: f64) -> f64 {
    words.chars().count() as f64 * size * CHARACTER
}

/// Number of characters of a font of this size that fit into a width.
#[must_use]
pub fn columns(width: f64, size: f64) -> usize {
    (width / (size * CHARACTER)).max(1.0) as usize
}

/// `words`, or their beginning and end with `…` between them if they have more than `most` characters.
#[must_use]
pub fn shortened(words: &str, most: usize) -> String {
    let count = words.chars().count();
    if count <= most {
        return words.to_owned();
    }
    let most = most.max(1);
    let start: String = words.chars().take(most / 2).collect();
    let end: String = words.chars().skip(count - (most - 1) / 2).collect();
    format!("{start}…{end}")
}

/// Lines of at most `columns` characters, except where a word is longer.
#[must_use]
pub fn wrapped(words: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut room = columns;
    for word in words.split_whitespace() {
        let length = word.chars().count() + 1;
        let line = lines.len() - 1;
        if length > room && !lines[line].is_empty() {
            lines.push(word.to_owned());
            room = columns.saturating_sub(length);
        } else {
            if !lines[line].is_empty() {
                lines[line].push(' ');
            }
            lines[line].push_str(word);
            room = room.saturating_sub(length);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_keep_both_ends() {
        assert_eq!(shortened("potrf(12)", 9), "potrf(12)");
        assert_eq!(shortened("potrf(12)", 7), "pot…12)");
        assert_eq!(shortened("potrf(12)", 6), "pot…2)");
        assert_eq!(shortened("potrf(12)", 1), "…");
        assert_eq!(shortened("potrf(12)", 0), "…");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible", 4), ["incomprehensible"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn what_fits_is_not_wider_than_the_room() {
        let fits = columns(100.0, 11.0);
        assert!(text_width(&"x".repeat(fits), 11.0) <= 100.0);
        assert!(text_width(&"x".repeat(fits + 1), 11.0) > 100.0);
    }
}
