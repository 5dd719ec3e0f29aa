// The columns in which a recording notes the operations of a stream.
import { expect, test } from 'vitest';
import { OperationColumns } from '../../../src/recording/operation-columns.js';

function named(columns: OperationColumns, ticket: number, label: string | undefined): void {
  columns.named(columns.at(ticket), ticket, 'launch', label, undefined);
}

test('S1203 labels of operations that were dropped are forgotten, and the others stay', () => {
  const columns = new OperationColumns();
  for (let ticket = 1; ticket <= 1000; ticket++) {
    columns.label = ticket <= 995 ? 'first' : 'second';
    named(columns, ticket, ticket % 2 === 0 ? `request ${ticket}` : undefined);
    if (columns.length > 10) columns.drop(5);
  }
  const found = columns.operations('cpu:0', 1);
  expect(found.map(({ label }) => label)).toEqual(found.map(({ ticket }) => (ticket % 2 === 0 ? `request ${ticket}` : undefined)));
  expect(found.map(({ stream }) => stream)).toEqual(found.map(({ ticket }) => (ticket <= 995 ? 'first' : 'second')));
  expect(found.at(-1)!.ticket).toBe(1000);
  expect(columns.texts).toBeLessThan(30);
});

test('S1201 a record has the kind of the operation that names it, else its own, and one that only orders others is left out', () => {
  const columns = new OperationColumns();
  columns.label = 's';
  named(columns, 3, 'x');
  columns.submitted(columns.at(3), 1, 'copy');
  columns.submitted(columns.at(1), 1, 'fill');
  columns.issued(columns.at(2), 2, undefined);
  columns.waits(columns.at(4), undefined);
  expect(columns.operations('cpu:0', 1).map(({ ticket, kind, stream }) => [ticket, kind, stream])).toEqual([
    [1, 'fill', 's'],
    [3, 'launch', 's'],
    [4, 'host', 's'],
  ]);
});
