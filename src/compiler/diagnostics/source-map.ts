// Reads a script's source map: inline, or a file next to the script. On the error path only.
import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { LINE_END, type FunctionScript, type ScriptPoint } from './function-script.js';

/** What a map says about a point: its last mapping on that line at or before the point. */
export interface Mapped {
  /** A path, or the name in the map when that is not a path. */
  readonly file: string;
  /** 0-based. */
  readonly line: number;
  readonly column: number;
  /** 0-based column in the script where the mapping begins. */
  readonly scriptColumn: number;
  /** The line in the user's file, if the map or the disk has it. */
  readonly text: string | undefined;
}

/** A map, or a section of a map that is made of several. */
type MapPart = Pick<SourceMapPayload, 'sources' | 'sourcesContent' | 'sourceRoot' | 'mappings' | 'names'>;
type Payload = SourceMapPayload & { readonly sections?: readonly { readonly map: MapPart }[] };

const partsOf = (payload: Payload): readonly MapPart[] => payload.sections?.map(({ map }) => map) ?? [payload];

/** Node reads as many entries as `length` says, also of what is no list: a damaged map would take minutes. */
function isPart({ sources, names, mappings }: MapPart): boolean {
  return Array.isArray(sources) && Array.isArray(names ?? []) && typeof mappings === 'string';
}

/** Looks up a point; undefined when the map has no mapping on that line. */
export type FindOriginal = (point: ScriptPoint) => Mapped | undefined;

/** Undefined when the script's map cannot be read. */
export function openSourceMap(script: FunctionScript): FindOriginal | undefined {
  try {
    const base = baseOf(script);
    const payload = JSON.parse(textOf(script.mapUrl, base)) as Payload;
    if (!partsOf(payload).every(isPart)) return undefined;
    const map = new SourceMap(payload);
    return (point) => {
      try {
        return original(map, payload, base, point);
      } catch {
        // Its parts do not have the form of a map.
        return undefined;
      }
    };
  } catch {
    return undefined;
  }
}

function original(map: SourceMap, payload: Payload, base: Base, point: ScriptPoint): Mapped | undefined {
  const entry = map.findEntry(point.line, point.column);
  if (!('originalSource' in entry) || entry.generatedLine !== point.line || !entry.originalSource) return undefined;
  const { originalSource: name, originalLine: line, originalColumn: column, generatedColumn: scriptColumn } = entry;
  const part = partsOf(payload).find(({ sources }) => sources.includes(name)) ?? payload;
  const path = pathOf(part.sourceRoot ? `${part.sourceRoot.replace(/\/$/, '')}/${name}` : name, base.url);
  const content = part.sourcesContent?.[part.sources.indexOf(name)] ?? (path === undefined ? undefined : onDisk(path));
  return { file: path ?? name, line, column, scriptColumn, text: content?.split(LINE_END)[line] };
}

/** Undefined for a name that is no path, such as `webpack:///./a.ts`, or no URL either, such as `turbopack://[project]/a.ts`. */
function pathOf(name: string, base: URL): string | undefined {
  try {
    return fileURLToPath(new URL(name, base));
  } catch {
    return undefined;
  }
}

function onDisk(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

interface Base {
  /** The base URL of relative names: the map's own file, or the script for an inline map. */
  readonly url: URL;
  readonly isInline: boolean;
}

function baseOf({ url, mapUrl }: FunctionScript): Base {
  const script = url.startsWith('/') ? pathToFileURL(url) : new URL(url);
  const isInline = mapUrl.startsWith('data:');
  return { url: isInline ? script : new URL(mapUrl, script), isInline };
}

function textOf(mapUrl: string, { url, isInline }: Base): string {
  if (!isInline) return readFileSync(url, 'utf8');
  const comma = mapUrl.indexOf(',');
  const data = mapUrl.slice(comma + 1);
  return mapUrl.slice(0, comma).endsWith(';base64') ? Buffer.from(data, 'base64').toString('utf8') : decodeURIComponent(data);
}
