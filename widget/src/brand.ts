/**
 * A site's own colour, adjusted so that text on it and text in it have the contrast of WCAG 2.2 (1.4.3).
 */

type Rgb = readonly [number, number, number];

const ENOUGH = 4.5; // contrast of text (WCAG 2.2, 1.4.3)
const STEP = 0.05; // share of the way to black or white by which a colour moves at a time
const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];
// The darker of the light surfaces and the lighter of the dark ones (--raised in chat.css): the harder to read on.
const LIGHT: Rgb = [242, 246, 246];
const DARK: Rgb = [33, 42, 47];

/** CSS variables for any CSS colour; null when it is none. */
export function brand(colour: string): Record<string, string> | null {
  const accent = rgb(colour);
  if (!accent) return null;
  return {
    "--accent": css(accent),
    "--on-accent": contrast(accent, WHITE) >= contrast(accent, BLACK) ? "#fff" : "#000",
    "--link": `light-dark(${css(readable(accent, LIGHT, BLACK))}, ${css(readable(accent, DARK, WHITE))})`,
  };
}

/** The bytes of any CSS colour, by means of a canvas. */
function rgb(colour: string): Rgb | null {
  if (!CSS.supports("color", colour)) return null;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r = 0, g = 0, b = 0] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b];
}

function readable(colour: Rgb, paper: Rgb, towards: Rgb): Rgb {
  for (let share = 0; share < 1; share += STEP) {
    const mixed = mix(colour, towards, share);
    if (contrast(mixed, paper) >= ENOUGH) return mixed;
  }
  return towards;
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const at = (i: 0 | 1 | 2) => Math.round(from[i] + (to[i] - from[i]) * share);
  return [at(0), at(1), at(2)];
}

function contrast(one: Rgb, other: Rgb): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((byte) => byte / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}
