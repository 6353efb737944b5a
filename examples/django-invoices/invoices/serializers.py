"""Serializers for arguments and results."""

from rest_framework import serializers

from invoices.models import Customer, Invoice, Line


class CustomerInput(serializers.ModelSerializer):
    """A new customer with a unique name."""

    class Meta:
        model = Customer
        fields = ("name",)


class LineSerializer(serializers.ModelSerializer):
    """One line."""

    class Meta:
        model = Line
        fields = ("what", "amount")


class InvoiceInput(serializers.Serializer):
    """A new invoice."""

    number = serializers.CharField(max_length=20, help_text="Of your own choice, such as 2026-001.")
    customer = serializers.SlugRelatedField(
        slug_field="name", queryset=Customer.objects.all(), help_text="The customer's name."
    )
    due = serializers.DateField(required=False)
    lines = LineSerializer(many=True)

    def validate_lines(self, lines):
        """Refuses an invoice without lines."""
        if not lines:
            raise serializers.ValidationError("An invoice needs a line.")
        return lines


class StatusInput(serializers.Serializer):
    """A new status."""

    status = serializers.ChoiceField(choices=Invoice.Status.choices)


class InvoiceOutput(serializers.ModelSerializer):
    """An invoice."""

    customer = serializers.CharField(source="customer.name")
    lines = LineSerializer(many=True)
    total = serializers.DecimalField(max_digits=12, decimal_places=2)

    class Meta:
        model = Invoice
        fields = ("id", "number", "customer", "status", "due", "lines", "total")


class DoubleInput(serializers.Serializer):
    """A number."""

    n = serializers.IntegerField()
