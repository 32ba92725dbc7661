//! The elements of a drawing.

use super::words::{columns, shortened, text_width};
use super::{INK, LABEL};
use crate::xml::escaped;
use std::fmt;

/// A number of pixels, with at most one decimal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // No `-0`.
        let pixels = tenths / 10.0 + 0.0;
        if tenths % 10.0 == 0.0 { write!(f, "{pixels:.0}") } else { write!(f, "{pixels:.1}") }
    }
}

/// The path of an edge that leaves `from` downwards and reaches `to` from above; for the attribute `d`.
#[must_use]
pub fn curve(from: (f64, f64), to: (f64, f64), bend: f64) -> String {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Px);
    let (below, above) = (Px(from.1 + bend), Px(to.1 - bend));
    format!("M{x1} {y1}C{x1} {below} {x2} {above} {x2} {y2}")
}

/// An entry of a legend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swatch {
    /// The attributes of its box, such as `fill="#0072b2"`.
    pub look: String,
    /// Its meaning.
    pub words: String,
}

impl Swatch {
    /// An entry with a box of this colour.
    #[must_use]
    pub fn filled(fill: &str, words: impl Into<String>) -> Swatch {
        Swatch { look: format!("fill=\"{fill}\" stroke=\"#cbd2dc\""), words: words.into() }
    }
}

/// Writes the elements of a drawing in order. Lengths are in pixels; a `look` is a list of attributes.
#[derive(Clone, Debug)]
pub struct Pen {
    out: String,
    size: f64,
}

impl Pen {
    /// The size of headings.
    const HEADING: f64 = 16.0;
    /// The height of a line of the legend.
    const LINE: f64 = 19.0;

    /// A pen with this font size.
    #[must_use]
    pub fn new(size: f64) -> Pen {
        Pen { out: String::new(), size }
    }

    /// Appends the elements of another pen, such as those drawn above earlier ones.
    pub fn append(&mut self, other: Pen) {
        self.out.push_str(&other.out);
    }

    /// An element as it is; the caller escapes its text.
    pub fn raw(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = fmt::Write::write_fmt(&mut self.out, element);
    }

    /// A line of text whose baseline starts at this point, unless `look` sets another anchor.
    pub fn text(&mut self, (x, y): (f64, f64), look: &str, words: &str) {
        self.raw(format_args!("<text x=\"{}\" y=\"{}\" {look}>{}</text>\n", Px(x), Px(y), escaped(words)));
    }

    /// A heading, shortened to a width.
    pub fn heading(&mut self, at: (f64, f64), width: f64, words: &str) {
        let words = shortened(words, columns(width, Self::HEADING));
        self.text(at, &format!("font-size=\"{}\" font-weight=\"bold\" fill=\"{INK}\"", Self::HEADING), &words);
    }

    /// Tooltip of the enclosing group.
    pub fn tooltip(&mut self, words: &str) {
        self.raw(format_args!("<title>{}</title>", escaped(words)));
    }

    /// A box.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), look: &str) {
        let [x, y, width, height] = [x, y, width, height].map(Px);
        self.raw(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {look}/>"));
    }

    /// A path that is not filled, with a tooltip if there is one.
    pub fn path(&mut self, d: &str, look: &str, tooltip: Option<&str>) {
        self.raw(format_args!("<path d=\"{d}\" fill=\"none\" {look}"));
        match tooltip {
            Some(words) => {
                self.out.push('>');
                self.tooltip(words);
                self.out.push_str("</path>\n");
            }
            None => self.out.push_str("/>\n"),
        }
    }

    /// A group with a tooltip and the elements that `draw` adds.
    pub fn group(&mut self, tooltip: &str, draw: impl FnOnce(&mut Pen)) {
        self.out.push_str("<g>");
        draw(self);
        self.tooltip(tooltip);
        self.out.push_str("</g>\n");
    }

    /// A legend from `left` to `right`, wrapped into lines from `y` on. Returns the `y` of the last line.
    pub fn legend(&mut self, swatches: &[Swatch], left: f64, right: f64, mut y: f64) -> f64 {
        let mut x = left;
        for Swatch { look, words } in swatches {
            let room = 22.0 + text_width(words, self.size) + 12.0;
            if x + room > right && x > left {
                x = left;
                y += Self::LINE;
            }
            self.rect((x, y - 10.0), (16.0, 12.0), &format!("rx=\"3\" {look}"));
            self.text((x + 22.0, y), &format!("fill=\"{LABEL}\""), words);
            x += room;
        }
        y
    }

    /// The drawing as a complete file on a white background.
    #[must_use]
    pub fn finish(self, title: &str, width: f64, height: f64) -> String {
        let (width, height) = (Px(width.round()), Px(height.round()));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" \
             font-size=\"{}\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.size,
            escaped(title),
            self.out
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_one_decimal_at_most() {
        let shown = [0.0, -0.01, 3.0, 3.04, 3.06, -2.5].map(|pixels| Px(pixels).to_string());
        assert_eq!(shown, ["0", "0", "3", "3", "3.1", "-2.5"]);
    }

    #[test]
    fn no_text_leaves_its_element() {
        let mut pen = Pen::new(11.0);
        pen.group("</title>", |pen| pen.text((1.0, 2.0), "", "<&"));
        pen.heading((0.0, 0.0), 400.0, "\"<b>\"");
        pen.legend(&[Swatch::filled("red", "<")], 0.0, 100.0, 0.0);
        pen.path("M0 0", "", Some("a > b"));
        let drawing = pen.finish("<svg>", 10.0, 10.0);
        for escaped in ["<title>&lt;/title&gt;</title>", ">&lt;&amp;<", "&quot;&lt;b&gt;&quot;", ">&lt;<", "a &gt; b"] {
            assert!(drawing.contains(escaped), "{escaped}: {drawing}");
        }
        assert_eq!(drawing.matches("<svg").count(), 1);
    }

    #[test]
    fn a_legend_goes_on_in_the_next_line() {
        let swatches: Vec<Swatch> =
            ["gemm (56)", "potrf (8)", "syrk (28)"].map(|words| Swatch::filled("red", words)).into();
        let mut pen = Pen::new(11.0);
        assert_eq!(pen.legend(&swatches, 10.0, 1000.0, 5.0), 5.0);
        assert!(pen.legend(&swatches, 10.0, 150.0, 5.0) > 5.0);
        let text = |y: f64| format!("<text x=\"32\" y=\"{}\"", Px(y));
        assert!(pen.out.contains(&text(5.0)) && pen.out.contains(&text(5.0 + Pen::LINE)));
    }

    #[test]
    fn an_edge_bends_down_and_up() {
        assert_eq!(curve((0.0, 1.0), (10.0, 21.0), 10.0), "M0 1C0 11 10 11 10 21");
    }
}
